SELECT best.rnk, i1.i_product_name AS best_performing, i2.i_product_name AS worst_performing
FROM (
    SELECT item_sk, rnk
    FROM (
        SELECT item_sk, rank() OVER (ORDER BY profit ASC) AS rnk
        FROM (
            SELECT ss_item_sk AS item_sk, avg(ss_net_profit) AS profit
            FROM store_sales AS ss1
            WHERE ss_store_sk = 4
            GROUP BY ss_item_sk
            HAVING avg(ss_net_profit) > 0.9 * (
                SELECT avg(ss_net_profit) FROM store_sales
                WHERE ss_store_sk = 4 AND ss_addr_sk IS NULL GROUP BY ss_store_sk
            )
        ) AS v1
    ) AS v11
    WHERE rnk < 11
) AS best, (
    SELECT item_sk, rnk
    FROM (
        SELECT item_sk, rank() OVER (ORDER BY profit DESC) AS rnk
        FROM (
            SELECT ss_item_sk AS item_sk, avg(ss_net_profit) AS profit
            FROM store_sales AS ss1
            WHERE ss_store_sk = 4
            GROUP BY ss_item_sk
            HAVING avg(ss_net_profit) > 0.9 * (
                SELECT avg(ss_net_profit) FROM store_sales
                WHERE ss_store_sk = 4 AND ss_addr_sk IS NULL GROUP BY ss_store_sk
            )
        ) AS v2
    ) AS v21
    WHERE rnk < 11
) AS worst, item AS i1, item AS i2
WHERE best.rnk = worst.rnk AND i1.i_item_sk = best.item_sk AND i2.i_item_sk = worst.item_sk
ORDER BY best.rnk
LIMIT 100
