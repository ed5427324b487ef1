SELECT *
FROM (
    SELECT w_warehouse_name, i_item_id,
        sum(CASE WHEN d_date < DATE '2000-03-11' THEN inv_quantity_on_hand ELSE 0 END) AS before,
        sum(CASE WHEN d_date >= DATE '2000-03-11' THEN inv_quantity_on_hand ELSE 0 END) AS after
    FROM inventory, warehouse, item, date_dim
    WHERE i_current_price BETWEEN 0.99 AND 1.49 AND i_item_sk = inv_item_sk
        AND inv_warehouse_sk = w_warehouse_sk AND inv_date_sk = d_date_sk
        AND d_date BETWEEN DATE '2000-03-11' - INTERVAL 30 DAYS
            AND DATE '2000-03-11' + INTERVAL 30 DAYS
    GROUP BY w_warehouse_name, i_item_id
) AS stock
WHERE CASE WHEN before > 0 THEN after / before END BETWEEN 2.0 / 3.0 AND 3.0 / 2.0
ORDER BY w_warehouse_name, i_item_id
LIMIT 100
