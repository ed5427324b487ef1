WITH sales AS (
    SELECT d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id, sum(cnt) AS cnt,
        sum(amount) AS amount
    FROM (
        SELECT d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id,
            cs_quantity - coalesce(cr_return_quantity, 0) AS cnt,
            cs_ext_sales_price - coalesce(cr_return_amount, 0.0) AS amount
        FROM catalog_sales JOIN item ON i_item_sk = cs_item_sk
            JOIN date_dim ON d_date_sk = cs_sold_date_sk
            LEFT JOIN catalog_returns
                ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk
        WHERE i_category = 'Home'
        UNION
        SELECT d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id,
            ss_quantity - coalesce(sr_return_quantity, 0),
            ss_ext_sales_price - coalesce(sr_return_amt, 0.0)
        FROM store_sales JOIN item ON i_item_sk = ss_item_sk
            JOIN date_dim ON d_date_sk = ss_sold_date_sk
            LEFT JOIN store_returns
                ON ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk
        WHERE i_category = 'Home'
        UNION
        SELECT d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id,
            ws_quantity - coalesce(wr_return_quantity, 0),
            ws_ext_sales_price - coalesce(wr_return_amt, 0.0)
        FROM web_sales JOIN item ON i_item_sk = ws_item_sk
            JOIN date_dim ON d_date_sk = ws_sold_date_sk
            LEFT JOIN web_returns
                ON ws_order_number = wr_order_number AND ws_item_sk = wr_item_sk
        WHERE i_category = 'Home'
    ) AS detail
    GROUP BY d_year, i_brand_id, i_class_id, i_category_id, i_manufact_id
)
SELECT earlier.d_year AS previous_year, later.d_year AS year, later.i_brand_id, later.i_class_id,
    later.i_category_id, later.i_manufact_id, earlier.cnt AS previous_cnt, later.cnt AS current_cnt,
    later.cnt - earlier.cnt AS cnt_difference, later.amount - earlier.amount AS amount_difference
FROM sales AS later, sales AS earlier
WHERE later.i_brand_id = earlier.i_brand_id AND later.i_class_id = earlier.i_class_id
    AND later.i_category_id = earlier.i_category_id
    AND later.i_manufact_id = earlier.i_manufact_id AND later.d_year = 1999
    AND earlier.d_year = 1998
    AND CAST(later.cnt AS DECIMAL(17, 2)) / CAST(earlier.cnt AS DECIMAL(17, 2)) < 0.9
ORDER BY cnt_difference, amount_difference
LIMIT 100
